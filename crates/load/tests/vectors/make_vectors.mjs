// Makes the coded contents that the tests of crates/load/src/content.rs read, with encoders that are none of ours:
// Node's zlib (zlib and Brotli in C), gzip and zstd. Run by hand from this folder, `node make_vectors.mjs`, with Node 20.15
// or newer, gzip and zstd on the path; the files are committed. Made last with Node 20.20, gzip 1.12 and zstd 1.5.4.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as zlib from "node:zlib";

const folder = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const write = (name, bytes) => writeFileSync(join(folder, name), bytes);
const sums = [];
const sum = (name, bytes) => sums.push(`${createHash("sha256").update(bytes).digest("hex")}  ${name}`);

const { BROTLI_PARAM_LGWIN, BROTLI_PARAM_LARGE_WINDOW, BROTLI_PARAM_QUALITY } = zlib.constants;
const brotli = (bytes, params = {}) => zlib.brotliCompressSync(bytes, { params });
const run = (program, args, input) => execFileSync(program, args, { input, maxBuffer: 1 << 30 });
const zstd = (bytes, ...args) => run("zstd", ["-q", "-c", ...args], bytes);

// A page such as an API answers: repetition to match, digits that do not compress, letters beyond ASCII.
let seed = 20240917;
const draw = (below) => {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 8) % below;
};
const item = (id) => ({ id, name: `Café Nº ${id}`, price: draw(100000) / 100, stock: draw(500), tags: ["new", "ß"] });
const page = Buffer.from(JSON.stringify({ items: Array.from({ length: 20 }, (_, id) => item(id)) }) + "\n");
write("page.txt", page);
sum("page.txt", page);

// Longer than every window and block it meets below. The tests make it again from the page, so it is not kept.
const long = Buffer.concat(Array.from({ length: 400 }, (_, turn) => Buffer.concat([Buffer.from(`${turn}\n`), page])));
sum("long", long);

// The page, once by each coding. Where zstd is told the length it states it, and leaves the window out.
write("page.gz", zlib.gzipSync(page));
write("page.zlib", zlib.deflateSync(page));
write("page.deflate", zlib.deflateRawSync(page));
write("page.br", brotli(page));
write("page.zst", zstd(page, "--check"));
write("page.unchecked.zst", zstd(page, "--no-check", `--stream-size=${page.length}`));

// As gzip does it, with a name in the header; with every header field that there is; and in two members.
const temporary = mkdtempSync(join(tmpdir(), "vectors-"));
const named = join(temporary, "page.txt");
writeFileSync(named, page);
utimesSync(named, 1e9, 1e9);
write("page.named.gz", run("gzip", ["-c", "-N", named]));
const fixed = Buffer.from([0x1f, 0x8b, 8, 0b11110, 0, 0, 0, 0, 0, 255]);
const extra = Buffer.concat([Buffer.from([9, 0]), Buffer.from("PL\x05\x00\x00\x00\x00\x00\x00", "latin1")]);
const header = Buffer.concat([fixed, extra, Buffer.from("page.txt\0a comment\0")]);
const headerCrc = Buffer.alloc(2);
headerCrc.writeUInt16LE(zlib.crc32(header) & 0xffff);
const trailer = Buffer.alloc(8);
trailer.writeUInt32LE(zlib.crc32(page), 0);
trailer.writeUInt32LE(page.length, 4);
write("page.fields.gz", Buffer.concat([header, headerCrc, zlib.deflateRawSync(page), trailer]));
const half = page.length >> 1;
write("page.members.gz", Buffer.concat([zlib.gzipSync(page.subarray(0, half)), zlib.gzipSync(page.subarray(half))]));

// Two frames with a skippable one before each.
const skippable = Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
const frames = [skippable, zstd(page.subarray(0, half)), skippable, zstd(page.subarray(half))];
write("page.frames.zst", Buffer.concat(frames));

// First br, then gzip: "br, gzip".
write("page.br.gz", zlib.gzipSync(brotli(page)));

// Windows that slide: the long content is several times their size.
write("long.gz", zlib.gzipSync(long));
write("long.br", brotli(long, { [BROTLI_PARAM_LGWIN]: 16 }));
write("long.zst", zstd(long, "-3", "--zstd=wlog=16"));

// Nothing, coded.
const nothing = Buffer.alloc(0);
write("empty.gz", zlib.gzipSync(nothing));
write("empty.zlib", zlib.deflateSync(nothing));
write("empty.deflate", zlib.deflateRawSync(nothing));
write("empty.br", brotli(nothing));
write("empty.zst", zstd(nothing));

// Bombs: 16 MiB of zeros.
const zeros = Buffer.alloc(16 << 20);
write("bomb.gz", zlib.gzipSync(zeros, { level: 9 }));
write("bomb.zlib", zlib.deflateSync(zeros, { level: 9 }));
write("bomb.br", brotli(zeros, { [BROTLI_PARAM_QUALITY]: 5 }));
write("bomb.zst", zstd(zeros));

// What HTTP does not allow: windows of more than 16 MiB for br and of more than 8 MiB for zstd, and a dictionary; and
// the largest zstd window that it does allow.
write("large-window.br", brotli(page, { [BROTLI_PARAM_LARGE_WINDOW]: true, [BROTLI_PARAM_LGWIN]: 26 }));
write("window-8m.zst", zstd(page, "--zstd=wlog=23"));
write("window-16m.zst", zstd(page, "--zstd=wlog=24"));
const dictionary = join(temporary, "dictionary");
const samples = Array.from({ length: 200 }, (_, id) => {
  const sample = join(temporary, `sample-${id}`);
  writeFileSync(sample, JSON.stringify(item(id)));
  return sample;
});
run("zstd", ["-q", "--train", ...samples, "--maxdict=1024", "--dictID=7", "-o", dictionary]);
write("dictionary.zst", zstd(page, "-D", dictionary));

write("SHA256SUMS", `${sums.join("\n")}\n`);

// Other programs read what was put together by hand here.
const same = (name, program) => {
  const decoded = run(program, ["-q", "-d", "-c", join(folder, name)]);
  if (!decoded.equals(page)) throw new Error(`${program} does not read ${name}`);
};
["page.fields.gz", "page.members.gz"].forEach((name) => same(name, "gzip"));
["page.zst", "page.unchecked.zst", "page.frames.zst", "window-8m.zst"].forEach((name) => same(name, "zstd"));
rmSync(temporary, { recursive: true });
