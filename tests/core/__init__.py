"""The core, module by module: examples, properties, and the behaviour cases."""
