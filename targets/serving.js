'use strict';

// What services under test do alike: they listen on PORT of HOST, say where in their first line, and end cleanly on SIGTERM. It must not
// respond to anything.

const STOP_GRACE_MS = 1000;

/** Lets a server of node:http listen, with options of its own; once it has closed it calls `ended`. */
function serve(server, { port = 3000, ended, ...options } = {}) {
  const { PORT = port, HOST = '127.0.0.1' } = process.env;
  server.listen({ port: Number(PORT), host: HOST, ...options }, () => {
    console.log(`listening on http://${HOST}:${server.address().port}`);
  });
  // Requests under way are finished; connections that are still open after the grace period are closed. A worker may get the signal
  // twice: from its primary, and as one of all processes.
  process.on('SIGTERM', () => {
    server.close(ended);
    setTimeout(() => server.closeAllConnections(), STOP_GRACE_MS).unref();
  });
}

/** The channel to its primary would keep a worker of a cluster alive. */
function leavePrimary() {
  if (process.connected) process.disconnect();
}

module.exports = { leavePrimary, serve };
