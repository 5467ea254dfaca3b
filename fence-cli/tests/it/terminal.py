"""Runs a script at a terminal, answers what it says, and prints what it said: terminal.py SCRIPT [WAIT-FOR ANSWER]..."""
import os
import pty
import signal
import sys

script, *talk = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    # A test that runs in a shell's background inherits these as ignored.
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    os.execv("/bin/sh", ["sh", "-c", script])
said = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # Nobody is left at the other end.
        break
    said += piece
    while talk and talk[0].encode() in said:
        os.write(terminal, talk[1].encode().decode("unicode_escape").encode())
        talk = talk[2:]
os.waitpid(pid, 0)
print(said.decode())
