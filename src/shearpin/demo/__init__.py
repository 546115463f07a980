"""The agents behind `shearpin demo`: a runaway one with a script, and one with a real small model.

* `agents` - the scripted runaway ReAct agent
* `live` - the same loop around a real model on this machine
* `contest` - runs one graph bare and guarded, and measures both from outside the guard
* `show` - both side by side on a terminal
"""
