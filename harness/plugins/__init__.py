"""pytest plugins that run inside the target interpreter: standard library and L0 only, torch and triton lazily."""
