internal import Foundation

/// The capture time of a photo by the camera's clock, in seconds; only differences are meaningful.
enum CaptureTime {
    /// Reads the time from the EXIF block of a JPEG; nil if the file has no such time.
    static func read(_ url: URL) -> Int? { text(of: url).flatMap(seconds) }

    /// Reads the time of a JPEG in the format of EXIF, "2019:07:21 14:03:59".
    static func text(of url: URL) -> String? {
        let prefix = Array("Exif\0\0".utf8)
        // An EXIF block has at most 64 KB and is near the start.
        guard let bytes = firstBytes(1 << 17, of: url), bytes.starts(with: [0xFF, 0xD8]),
            let exif = JPEGSegments(bytes).first(where: { $0.marker == 0xE1 && $0.content.starts(with: prefix) })
        else { return nil }
        return text(exif: exif.content.dropFirst(prefix.count))
    }

    /// Reads the time in the Exif directory of an EXIF block: DateTimeOriginal, or else DateTimeDigitized.
    ///
    /// DateTime in the first directory is the time of the last change. Programs that export many photos at once write almost the same time into
    /// all of them, so it does not show which photos were taken together.
    static func seconds(exif block: ArraySlice<UInt8>) -> Int? { text(exif: block).flatMap(seconds) }

    private static func text(exif block: ArraySlice<UInt8>) -> String? {
        let (exifDirectory, dateTimeOriginal, dateTimeDigitized) = (0x8769, 0x9003, 0x9004)
        guard let reader = TIFFReader(block), let first = reader.integer(at: 4, bytes: 4),
            let offset = reader.value(of: exifDirectory, in: first)
        else { return nil }
        let texts = [dateTimeOriginal, dateTimeDigitized].lazy.compactMap { reader.text(of: $0, in: offset) }
        return texts.first { seconds($0) != nil }
    }

    /// Inserts a time as DateTimeOriginal (EXIF 2.32, 4.5 and 4.6) into a JPEG without EXIF.
    static func inserting(_ time: String, into jpeg: [UInt8]) -> [UInt8] {
        let header: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8]
        func directory(_ tag: [UInt8], _ type: UInt8, count: UInt8, offset: UInt8) -> [UInt8] {
            [0, 1] + tag + [0, type, 0, 0, 0, count, 0, 0, 0, offset] + [0, 0, 0, 0]
        }
        let (long, ascii): (UInt8, UInt8) = (4, 2)
        let block =
            header + directory([0x87, 0x69], long, count: 1, offset: 26)
            + directory([0x90, 0x03], ascii, count: 20, offset: 44) + Array(time.utf8) + [0]
        let segment = JPEGSegments.segment(0xE1, Array("Exif\0\0".utf8) + block)
        return jpeg.prefix(2) + segment + jpeg.dropFirst(2)
    }

    /// Converts a time such as "2019:07:21 14:03:59" to seconds since the year 0 of the Gregorian calendar.
    static func seconds(_ text: String) -> Int? {
        let fields = text.split(whereSeparator: { $0 == ":" || $0 == " " }).map { Int($0) }
        guard fields.count == 6, let year = fields[0], let month = fields[1], let day = fields[2],
            let hour = fields[3], let minute = fields[4], let second = fields[5],
            (1...9999).contains(year), (1...12).contains(month), (1...31).contains(day), (0...23).contains(hour),
            (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        // Counting years from March puts the leap day last.
        let (years, months) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day
        return ((days * 24 + hour) * 60 + minute) * 60 + second
    }
}

extension TIFFReader {
    /// Returns the value of the field of a tag or, for long fields, its offset; nil if the directory has no such tag.
    fileprivate func value(of tag: Int, in directory: Int) -> Int? {
        field(tag, in: directory).flatMap { integer(at: $0 + 8, bytes: 4) }
    }

    /// Returns the text of a tag with the length of a time; nil if the directory has no such tag.
    fileprivate func text(of tag: Int, in directory: Int) -> String? {
        let length = "2019:07:21 14:03:59".utf8.count
        guard let offset = value(of: tag, in: directory), offset <= block.count - length else { return nil }
        return String(decoding: block.dropFirst(offset).prefix(length), as: UTF8.self)
    }

    private func field(_ tag: Int, in directory: Int) -> Int? {
        guard let count = integer(at: directory, bytes: 2) else { return nil }
        let fields = (0..<count).lazy.map { directory + 2 + 12 * $0 }
        return fields.first { integer(at: $0, bytes: 2) == tag }
    }
}
