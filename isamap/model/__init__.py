"""An analytical model of loop nests on memories: exact footprints and traffic, and its optimum."""
