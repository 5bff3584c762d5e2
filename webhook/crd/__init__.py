"""CustomResourceDefinitions from models: the parts that all kinds share."""
