"""Exit code 0 when an address answers 200: the health check of the image, which has neither curl nor wget.

Knows the standard library alone, because it runs every few seconds.
"""

import sys
import urllib.error
import urllib.request


def main(url: str) -> int:
    """0 for a reply of 200 within 4 s, otherwise 1 with what came instead."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy cannot reach our loopback
    try:
        with direct.open(url, timeout=4) as reply:
            return 0 if reply.status == 200 else 1
    except (OSError, ValueError) as error:
        print(f"{url}: {error}", file=sys.stderr)  # noqa: T201
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
