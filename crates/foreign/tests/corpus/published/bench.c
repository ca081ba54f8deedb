// Compile with:
//   $ gcc -o bench bench.c -Wall -O2
//   $ ./bench
// It listens on http://localhost:8080/ and http://localhost:8080/db
// Try it with ab:
//   $ ab -k -t 10 -c 20 http://localhost:8080/
// On my notebook:
//   Requests per second:    58288.10 [#/sec] (mean)

// Copyright (c) 2013, somebody
// Under the BSD licence

#include <stdio.h>
