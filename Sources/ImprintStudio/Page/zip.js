// Writes a ZIP archive without compression, because JPEGs are compressed (PKWARE APPNOTE 6.3, sections 4.3.7, 4.3.12, 4.3.16).

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
