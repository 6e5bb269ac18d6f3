/// A ZIP file whose entries are not compressed, as `torch.save` writes it.
///
/// Source: PKWARE's APPNOTE.TXT, version 6.3.10, sections 4.3 to 4.5.
struct StoredArchive {
    /// An entry.
    struct Entry {
        /// The range of the name in the file.
        fileprivate let name: Range<Int>
        /// The range of the entry with its header.
        fileprivate let record: Range<Int>
        /// The range of the content.
        fileprivate let content: Range<Int>
        fileprivate let checksum: UInt32
        fileprivate let isStored: Bool
    }

    let file: MappedFile
    /// The entries in the order of their names' bytes.
    private let entries: [Entry]

    /// Reads the central directory.
    ///
    /// - Throws: `ImportError.Problem.malformed` if it is damaged, or if entries overlap.
    init(_ file: MappedFile) throws(ImportError.Problem) {
        self.file = file
        let directory = try Directory(file)
        var entries: [Entry] = []
        entries.reserveCapacity(directory.count)
        var offset = directory.range.lowerBound
        for _ in 0..<directory.count { entries.append(try directory.entry(at: &offset)) }
        entries.sort { $0.record.lowerBound < $1.record.lowerBound }
        for (first, second) in zip(entries, entries.dropFirst())
        where second.record.lowerBound < first.record.upperBound {
            throw .malformed(
                reason:
                    "the entries \(Self.text(first.name, file)) and \(Self.text(second.name, file)) of the archive overlap"
            )
        }
        entries.sort { Self.order(file.bytes($0.name), file.bytes($1.name)) < 0 }
        for (first, second) in zip(entries, entries.dropFirst())
        where Self.order(file.bytes(first.name), file.bytes(second.name)) == 0 {
            throw .malformed(reason: "the archive has the entry \(Self.text(first.name, file)) twice")
        }
        self.entries = entries
    }

    /// Returns the entry with a name, or nil if the archive has no such entry.
    func entry(_ name: String) -> Entry? {
        var name = name
        return name.withUTF8 { name in
            var (low, high) = (0, entries.count)
            while low < high {
                let middle = (low + high) / 2
                let order = Self.order(file.bytes(entries[middle].name), UnsafeRawBufferPointer(name))
                if order == 0 { return entries[middle] }
                if order < 0 { low = middle + 1 } else { high = middle }
            }
            return nil
        }
    }

    /// Returns the name of the folder that contains `data.pkl`, or nil if the archive has no such folder.
    func folder() -> String? {
        let suffix = Array("/data.pkl".utf8)
        for entry in entries {
            let name = file.bytes(entry.name)
            guard name.count > suffix.count, name.suffix(suffix.count).elementsEqual(suffix),
                !name.dropLast(suffix.count).contains(UInt8(ascii: "/"))
            else { continue }
            return file.text(entry.name.lowerBound..<(entry.name.upperBound - suffix.count))
        }
        return nil
    }

    /// Returns the range of an entry's content.
    ///
    /// - Throws: `ImportError.Problem` if the entry is compressed or its checksum is wrong.
    func content(of entry: Entry) throws(ImportError.Problem) -> Range<Int> {
        let name = Self.text(entry.name, file)
        guard entry.isStored else {
            throw .unsuitableModel(
                found: "an archive with the compressed entry \(name), but torch.save compresses none",
                advice: "Save the checkpoint again with torch.save")
        }
        let found = CRC32.checksum(file.bytes(entry.content))
        guard found == entry.checksum else {
            throw .malformed(reason: "the checksum of the entry \(name) of the archive does not match its content")
        }
        return entry.content
    }

    /// Returns the size of an entry's content in bytes.
    func byteCount(of entry: Entry) -> Int { entry.content.count }

    /// Returns a name for messages.
    fileprivate static func text(_ name: Range<Int>, _ file: MappedFile) -> String {
        String(decoding: file.bytes(name).prefix(100), as: UTF8.self).debugDescription
    }

    /// Returns a negative number if `first` is before `second`, 0 if they are equal, otherwise a positive number.
    private static func order(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Int {
        for (first, second) in zip(first, second) where first != second { return Int(first) - Int(second) }
        return first.count - second.count
    }
}

/// The central directory of a ZIP file.
private struct Directory {
    let file: MappedFile
    let range: Range<Int>
    /// The number of entries.
    let count: Int

    private static let endLength = 22
    private static let headerLength = 46
    private static let localHeaderLength = 30

    private static func damaged(_ reason: String) -> ImportError.Problem {
        .malformed(reason: "the archive \(reason)")
    }

    /// Finds the directory through the record at the end of the file.
    init(_ file: MappedFile) throws(ImportError.Problem) {
        self.file = file
        // A comment of up to 65535 bytes may follow the record.
        let last = file.count - Self.endLength
        var end = last
        while end >= 0, end >= last - 0xFFFF,
            file.load(UInt32.self, at: end) != 0x0605_4B50 || Int(file.load(UInt16.self, at: end + 20)) != last - end
        {
            end -= 1
        }
        guard end >= 0, end >= last - 0xFFFF else { throw Self.damaged("has no directory at its end") }
        var number = UInt64(file.load(UInt16.self, at: end + 10))
        var size = UInt64(file.load(UInt32.self, at: end + 12))
        var start = UInt64(file.load(UInt32.self, at: end + 16))
        if number == 0xFFFF || size == 0xFFFF_FFFF || start == 0xFFFF_FFFF {
            // ZIP64: a locator before the record has the offset of another record.
            guard end >= 20, file.load(UInt32.self, at: end - 20) == 0x0706_4B50,
                case let position = file.load(UInt64.self, at: end - 12), let record = Int(exactly: position),
                record <= end - 20 - 56, file.load(UInt32.self, at: record) == 0x0606_4B50
            else { throw Self.damaged("has a damaged directory (ZIP64)") }
            number = file.load(UInt64.self, at: record + 32)
            size = file.load(UInt64.self, at: record + 40)
            start = file.load(UInt64.self, at: record + 48)
            end = record
        }
        guard let start = Int(exactly: start), let size = Int(exactly: size), start <= end, size <= end - start,
            let number = Int(exactly: number), number <= size / Self.headerLength
        else { throw Self.damaged("has a directory beyond the end of the file") }
        range = start..<(start + size)
        count = number
    }

    /// Reads an entry and moves `offset` to the next one.
    func entry(at offset: inout Int) throws(ImportError.Problem) -> StoredArchive.Entry {
        guard range.upperBound - offset >= Self.headerLength, file.load(UInt32.self, at: offset) == 0x0201_4B50 else {
            throw Self.damaged("has a damaged directory")
        }
        func length(at position: Int) -> Int { Int(file.load(UInt16.self, at: position)) }
        let nameStart = offset + Self.headerLength
        let name = nameStart..<(nameStart + length(at: offset + 28))
        let extra = name.upperBound..<(name.upperBound + length(at: offset + 30))
        let next = extra.upperBound + length(at: offset + 32)
        guard next <= range.upperBound else { throw Self.damaged("has a damaged directory") }
        let sizes = try sizes(at: offset, extra: extra)
        guard let header = Int(exactly: sizes.header), header <= range.lowerBound - Self.localHeaderLength,
            file.load(UInt32.self, at: header) == 0x0403_4B50
        else { throw Self.damaged("has an entry \(StoredArchive.text(name, file)) without a header") }
        let start = header + Self.localHeaderLength + length(at: header + 26) + length(at: header + 28)
        guard length(at: header + 26) == name.count, start <= range.lowerBound,
            file.bytes((header + Self.localHeaderLength)..<(header + Self.localHeaderLength + name.count))
                .elementsEqual(file.bytes(name))
        else { throw Self.damaged("has an entry \(StoredArchive.text(name, file)) whose header has another name") }
        guard let size = Int(exactly: sizes.compressed), size <= range.lowerBound - start else {
            throw Self.damaged("has an entry \(StoredArchive.text(name, file)) beyond the end of the file")
        }
        let isStored = file.load(UInt16.self, at: offset + 10) == 0
        guard !isStored || sizes.compressed == sizes.content else {
            throw Self.damaged("has an entry \(StoredArchive.text(name, file)) with two sizes")
        }
        guard file.load(UInt16.self, at: offset + 8) & 1 == 0 else {
            throw .unsuitableModel(found: "an encrypted archive", advice: "Save the checkpoint without encryption")
        }
        offset = next
        return StoredArchive.Entry(
            name: name, record: header..<(start + size), content: start..<(start + size),
            checksum: file.load(UInt32.self, at: nameStart - Self.headerLength + 16), isStored: isStored)
    }

    /// Returns the sizes of an entry and the offset of its header, from the ZIP64 field if necessary.
    private func sizes(
        at offset: Int, extra: Range<Int>
    ) throws(ImportError.Problem) -> (compressed: UInt64, content: UInt64, header: UInt64) {
        // The order of the fields in the ZIP64 field.
        var values = [24, 20, 42].map { UInt64(file.load(UInt32.self, at: offset + $0)) }
        guard values.contains(0xFFFF_FFFF) else { return (values[1], values[0], values[2]) }
        var field = extra.lowerBound
        while extra.upperBound - field >= 4 {
            let end = field + 4 + Int(file.load(UInt16.self, at: field + 2))
            guard end <= extra.upperBound else { break }
            if file.load(UInt16.self, at: field) == 1 {
                field += 4
                for index in values.indices where values[index] == 0xFFFF_FFFF {
                    guard end - field >= 8 else { throw Self.damaged("has a damaged directory (ZIP64)") }
                    values[index] = file.load(UInt64.self, at: field)
                    field += 8
                }
                return (values[1], values[0], values[2])
            }
            field = end
        }
        throw Self.damaged("has a damaged directory (ZIP64)")
    }
}
