"""How it runs: the only folder that starts processes, joins process groups and ends them."""
