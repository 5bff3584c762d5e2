"""CustomResourceDefinitions made from models: what is the same for every kind of object."""
