// Reads ZIP archives, and writes them without compression, because JPEGs are compressed (PKWARE APPNOTE 6.3, sections 4.3.7,
// 4.3.12, 4.3.16).

import { quoted } from "./parts.js";

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = table[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/** Returns the bytes of little-endian integers of 2 or 4 bytes, given as [value, size]. */
function integers(...fields) {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [, size]) => sum + size, 0)));
  let offset = 0;
  for (const [value, size] of fields) {
    if (size === 2) view.setUint16(offset, value, true);
    else view.setUint32(offset, value, true);
    offset += size;
  }
  return view.buffer;
}

/** Returns the MS-DOS time and date of a date. */
function timestamp(date) {
  const time = (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1);
  const day = (Math.max(date.getFullYear() - 1980, 0) << 9) | ((date.getMonth() + 1) << 5) | date.getDate();
  return [[time, 2], [day, 2]];
}

/** Returns a text as a name that all file systems allow: Windows reserves some names, and ignores spaces at the end. */
export function safeName(text) {
  const name = [...text.replace(/[^\p{L}\p{N} _-]/gu, "_")].slice(0, 60).join("").trim() || "picture";
  return /^(con|prn|aux|nul|(com|lpt)\p{N})$/iu.test(name) ? `${name}_` : name;
}

/** Creates an archive of files { name, blob, date }. Throws if the files exceed the limits of the 2- and 4-byte fields. */
export async function zip(files) {
  // Besides its content, a file needs 76 bytes and twice its name, at most three bytes per character.
  const size = files.reduce((sum, { name, blob }) => sum + blob.size + 76 + 6 * name.length, 22);
  if (files.length >= 0xffff || size >= 0xffffffff) {
    throw new Error("A ZIP file holds fewer than 65,535 files and less than 4 GB; export the photos by category.");
  }
  const parts = [], directory = [];
  let offset = 0, directorySize = 0;
  for (const file of files) {
    const name = new TextEncoder().encode(file.name), bytes = new Uint8Array(await file.blob.arrayBuffer());
    // Bit 11: the name is UTF-8. Method 0: stored.
    const common = [
      [20, 2], [0x800, 2], [0, 2], ...timestamp(file.date), [checksum(bytes), 4], [bytes.length, 4], [bytes.length, 4],
      [name.length, 2], [0, 2],
    ];
    const header = integers([0x04034b50, 4], ...common);
    const entry = integers([0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]);
    parts.push(header, name, bytes);
    directory.push(entry, name);
    offset += header.byteLength + name.length + bytes.length;
    directorySize += entry.byteLength + name.length;
  }
  const end = integers(
    [0x06054b50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [directorySize, 4], [offset, 4], [0, 2]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

const viewOf = async (blob) => new DataView(await blob.arrayBuffer());
const damaged = ({ name }) => new Error(`${quoted(name)} is damaged, incomplete or not a ZIP file. Choose another file.`);
const megabytes = (bytes) => bytes / 2 ** 20;

/** The maximum size of the list of files in an archive, in bytes. */
const directoryLimit = 16 * 2 ** 20;

/**
 * Returns the files that an archive lists, without reading them: their paths, and the values that `extract` needs.
 *
 * Throws if the list is damaged, or if a path leads out of the archive.
 */
export async function entriesOf(archive) {
  // The record at the end has 22 bytes and a comment of at most 65,535 bytes.
  const tail = await viewOf(archive.slice(-22 - 0xffff));
  let end = tail.byteLength - 22;
  const isEnd = () => tail.getUint32(end, true) === 0x06054b50 && tail.getUint16(end + 20, true) === tail.byteLength - end - 22;
  while (end >= 0 && !isEnd()) end -= 1;
  if (end < 0) throw damaged(archive);
  const count = tail.getUint16(end + 10, true), size = tail.getUint32(end + 12, true), offset = tail.getUint32(end + 16, true);
  if (count === 0xffff || offset === 0xffffffff) {
    throw new Error(`${quoted(archive.name)} is in the format ZIP64. Choose a ZIP file with fewer than 65,535 files and less than 4 GB.`);
  }
  if (size > directoryLimit || offset + size > archive.size - tail.byteLength + end) throw damaged(archive);
  const directory = await viewOf(archive.slice(offset, offset + size)), decoder = new TextDecoder("utf-8", { fatal: true });
  const entries = [];
  for (let start = 0, index = 0; index < count; index += 1) {
    if (start + 46 > size || directory.getUint32(start, true) !== 0x02014b50) throw damaged(archive);
    const short = (position) => directory.getUint16(start + position, true), long = (position) => directory.getUint32(start + position, true);
    const nameEnd = start + 46 + short(28);
    if (nameEnd > size) throw damaged(archive);
    const bytes = new Uint8Array(directory.buffer, start + 46, short(28));
    let path;
    try {
      path = decoder.decode(bytes).replaceAll("\\", "/");
    } catch {
      throw new Error(`${quoted(archive.name)} has file names that are not in UTF-8. Make the ZIP file with another program.`);
    }
    entries.push({
      path, name: path.split("/").at(-1), isEncrypted: (short(8) & 1) === 1, method: short(10), sum: long(16), compressedSize: long(20),
      size: long(24), offset: long(42),
    });
    start = nameEnd + short(30) + short(32);
  }
  // Folders are entries, too.
  const files = entries.filter(({ name }) => name !== "");
  const unsafe = files.find(({ path }) => path.split("/").some((part) => ["", ".", ".."].includes(part)));
  if (unsafe) throw new Error(`${quoted(archive.name)} has the path ${quoted(unsafe.path)}, which leads out of it. Choose another file.`);
  return files;
}

/** Returns the content of a file in an archive. Throws if it has another size or checksum than the archive lists. */
async function contentOf(archive, { offset, method, compressedSize, size, sum }) {
  const header = await viewOf(archive.slice(offset, offset + 30));
  if (header.byteLength < 30 || header.getUint32(0, true) !== 0x04034b50) throw damaged(archive);
  const start = offset + 30 + header.getUint16(26, true) + header.getUint16(28, true);
  const stored = archive.slice(start, start + compressedSize).stream();
  const reader = (method === 8 ? stored.pipeThrough(new DecompressionStream("deflate-raw")) : stored).getReader();
  const bytes = new Uint8Array(size);
  let length = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (length + part.value.length > size) throw damaged(archive);
      bytes.set(part.value, length);
      length += part.value.length;
    }
  } catch (error) {
    // The content cannot be decompressed.
    throw error instanceof TypeError ? damaged(archive) : error;
  } finally {
    // This also ends the decompression of more bytes than the archive lists.
    reader.cancel().catch(() => {});
  }
  if (length !== size || checksum(bytes) !== sum) throw damaged(archive);
  return bytes;
}

/** Returns the contents of files that `entriesOf` has listed, if all of them can be read and take at most `limit` bytes. */
export async function extract(archive, entries, limit) {
  for (const { path, isEncrypted, method } of entries) {
    if (isEncrypted) throw new Error(`${quoted(archive.name)} is encrypted. Make a ZIP file without a password.`);
    if (method !== 0 && method !== 8) {
      throw new Error(`${quoted(archive.name)} compresses ${quoted(path)} with method ${method}. Make a ZIP file with stored or deflated files.`);
    }
  }
  const size = entries.reduce((sum, entry) => sum + Math.max(entry.size, entry.compressedSize), 0);
  if (size > limit) {
    throw new Error(`The photos in ${quoted(archive.name)} take ${Math.ceil(megabytes(size))} MB, but may take at most ${megabytes(limit)} MB. Choose fewer photos.`);
  }
  const contents = [];
  for (const entry of entries) contents.push(await contentOf(archive, entry));
  return contents;
}
