// A ZIP archive of files as they are, for pictures are compressed already (PKWARE APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16).

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = table[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/** Numbers of 2 or 4 bytes, the least significant first: [value, size] each. */
function numbers(...fields) {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [, size]) => sum + size, 0)));
  let place = 0;
  for (const [value, size] of fields) {
    if (size === 2) view.setUint16(place, value, true);
    else view.setUint32(place, value, true);
    place += size;
  }
  return view.buffer;
}

function stamp(date) {
  const time = (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1);
  const day = (Math.max(date.getFullYear() - 1980, 0) << 9) | ((date.getMonth() + 1) << 5) | date.getDate();
  return [[time, 2], [day, 2]];
}

/** The archive of files { name, blob, date }. Throws where they are more than the fields of 2 and 4 bytes can count. */
export async function zip(files) {
  // Besides its bytes, a file takes 76 and twice its name, of which a letter takes at most three.
  const size = files.reduce((sum, { name, blob }) => sum + blob.size + 76 + 6 * name.length, 22);
  if (files.length >= 0xffff || size >= 0xffffffff) {
    throw new Error("A ZIP file holds fewer than 65,535 files and 4 GB; export the pictures by category.");
  }
  const parts = [], directory = [];
  let offset = 0, directorySize = 0;
  for (const file of files) {
    const name = new TextEncoder().encode(file.name), bytes = new Uint8Array(await file.blob.arrayBuffer());
    // Bit 11: the name is UTF-8. Method 0: stored.
    const common = [
      [20, 2], [0x800, 2], [0, 2], ...stamp(file.date), [checksum(bytes), 4], [bytes.length, 4], [bytes.length, 4],
      [name.length, 2], [0, 2],
    ];
    const header = numbers([0x04034b50, 4], ...common);
    const entry = numbers([0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]);
    parts.push(header, name, bytes);
    directory.push(entry, name);
    offset += header.byteLength + name.length + bytes.length;
    directorySize += entry.byteLength + name.length;
  }
  const end = numbers(
    [0x06054b50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [directorySize, 4], [offset, 4], [0, 2]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}
