module fairlead.dev/bench/fixed

go 1.26.0
