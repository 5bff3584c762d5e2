"""How answers read: lines, columns, YAML."""
