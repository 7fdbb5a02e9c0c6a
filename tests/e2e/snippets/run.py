"""run.py FILE: FILE has the verify() that is called."""
import base64
import runpy
import sys

verify = runpy.run_path(sys.argv[1])["verify"]
for line in sys.stdin:
    secret, *headers, body = [None if each == "-" else base64.b64decode(each) for each in line.rstrip("\n").split("\t")]
    named = {f"webhook-{name}": value.decode() for name, value in zip(("id", "timestamp", "signature"), headers) if value is not None}
    print("true" if verify(secret.decode(), named, body) else "false")
