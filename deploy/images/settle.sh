#!/bin/sh
# Inside a build, in the last stage: the user, its directories, and nothing of the base image's installers.
set -eu
rm -rf /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/bin/2to3* /usr/local/bin/wheel \
  /usr/local/lib/python3.*/ensurepip /usr/local/lib/python3.*/idlelib /usr/local/lib/python3.*/site-packages/*
echo 'amphitrite:x:65532:65532:Amphitrite:/var/lib/amphitrite:/usr/sbin/nologin' >>/etc/passwd
echo 'amphitrite:x:65532:' >>/etc/group
install -d -o 65532 -g 65532 -m 0750 /var/lib/amphitrite /run/amphitrite
