#!/bin/sh
# nginx on PORT: serves files/ as HTTP says, with WORKERS processes; /proxied goes to UPSTREAM, over connections that are kept if KEEP is set.
set -e
folder=$(mktemp -d "$ORDINARY_TMP/nginx.XXXXXX")
chmod 755 "$folder"
mkdir "$folder/files"
seq 20000 | tee "$folder/files/list.txt" | gzip > "$folder/files/list.txt.gz"
connection=close
[ -z "$KEEP" ] || connection=
printf 'hello\n' > "$folder/files/hello.txt"
cat > "$folder/nginx.conf" <<X
daemon off; worker_processes ${WORKERS:-1}; pid $folder/pid; error_log /dev/null;
$([ "$(id -u)" != 0 ] || echo 'user root;')
events { worker_connections 1024; }
http {
  access_log off; types { text/plain txt; } ${HTTP:-}
  client_body_temp_path $folder/a; proxy_temp_path $folder/b; fastcgi_temp_path $folder/c; uwsgi_temp_path $folder/d; scgi_temp_path $folder/e;
  upstream service { server 127.0.0.1:${UPSTREAM:-9}; ${KEEP:+keepalive 32;} }
  server {
    listen 127.0.0.1:$PORT; root $folder/files;
    location /proxied { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection "$connection"; }
  }
}
X
exec nginx -c "$folder/nginx.conf"
