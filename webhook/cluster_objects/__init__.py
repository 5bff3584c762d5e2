"""What the programs know of a cluster: policies, classes, nodes, namespaces, replicas."""
