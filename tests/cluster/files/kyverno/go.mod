module fairlead.dev/tests/kyverno

go 1.24.0

require github.com/kyverno/kyverno v1.19.1
