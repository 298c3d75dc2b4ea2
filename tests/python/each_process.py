"""`systole worker` for tests whose program is a script: starts it for each command line."""

import os
import socket
import struct
import subprocess
import sys


def main() -> None:
    requests = socket.socket(fileno=sys.stdin.fileno())
    while True:
        message, files, _, _ = socket.recv_fds(requests, 1 << 18, 2)
        if not message:
            return
        folder, *command = message.decode().removesuffix("\0").split("\0")
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=files[0], stderr=files[1]
        )
        for file in files:
            os.close(file)
        try:
            requests.send(struct.pack("=i", process.pid))
            requests.send(struct.pack("=i", process.wait()))
        except OSError:
            return  # the other end is closed


main()
