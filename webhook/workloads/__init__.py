"""From any object to the pods that its controller creates."""
