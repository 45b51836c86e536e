"""The studio: a local web page for people who do not program (`podium studio`).

start -> columns -> policies -> answer. The server never reads data itself: each upload is parsed, checked and compared
by a process of its own, with limits on memory and time (`worker`), and what it finds comes back as small JSON files.
"""
