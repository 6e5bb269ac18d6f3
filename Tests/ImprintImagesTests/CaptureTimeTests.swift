import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Returns an EXIF block with DateTime in its first directory, and DateTimeOriginal and DateTimeDigitized in its Exif directory, if not nil.
func exif(dateTime: String?, original: String?, digitized: String? = nil, isBigEndian: Bool = false) -> [UInt8] {
    func integer(_ value: Int, _ bytes: Int) -> [UInt8] {
        let little = (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        return isBigEndian ? little.reversed() : little
    }
    func entry(_ tag: Int, type: Int, count: Int, value: Int) -> [UInt8] {
        integer(tag, 2) + integer(type, 2) + integer(count, 4) + integer(value, 4)
    }
    // The bytes are the header (8), a directory of two entries (30), an Exif directory of two entries (30), and the texts.
    let head = (isBigEndian ? Array("MM".utf8) : Array("II".utf8)) + integer(42, 2) + integer(8, 4)
    let hasExif = original != nil || digitized != nil
    let first =
        integer(2, 2) + entry(dateTime == nil ? 0x10F : 0x132, type: 2, count: 20, value: 68)
        + entry(hasExif ? 0x8769 : 0x8825, type: 4, count: 1, value: 38) + integer(0, 4)
    // Tags in place of missing ones are those of time zones.
    let second =
        integer(2, 2) + entry(original == nil ? 0x9011 : 0x9003, type: 2, count: 20, value: 88)
        + entry(digitized == nil ? 0x9012 : 0x9004, type: 2, count: 20, value: 108) + integer(0, 4)
    func text(_ text: String?) -> [UInt8] { Array((text ?? "-------------------").utf8) + [0] }
    return head + first + second + text(dateTime) + text(original) + text(digitized)
}

@Suite("Capture time") struct CaptureTimeTests {
    @Test("Differences agree with the calendar")
    func differences() throws {
        func seconds(_ text: String) throws -> Int { try #require(CaptureTime.seconds(text)) }
        let day = 86_400
        #expect(try seconds("2020:03:01 00:00:00") - seconds("2020:02:28 00:00:00") == 2 * day)
        #expect(try seconds("2021:03:01 00:00:00") - seconds("2021:02:28 00:00:00") == day)
        #expect(try seconds("1900:03:01 00:00:00") - seconds("1900:02:28 00:00:00") == day)
        #expect(try seconds("2021:01:01 00:00:00") - seconds("2020:12:31 23:59:50") == 10)
        #expect(try seconds("2021:01:01 00:00:00") - seconds("2020:01:01 00:00:00") == 366 * day)
        #expect(try seconds("2019:07:21 14:04:00") - seconds("2019:07:21 14:03:59") == 1)
    }

    @Test(
        "Invalid times give nil",
        arguments: [
            "", "0000:00:00 00:00:00", "2019:13:01 00:00:00", "2019-07-21 14:03:59", "    :  :     :  :  ",
            "2019:07:21",
        ])
    func noTime(text: String) {
        #expect(CaptureTime.seconds(text) == nil)
    }

    @Test("The original time takes precedence over the digitized one, and the time of a change is ignored")
    func tags() {
        let (early, late) = ("2019:07:21 14:03:59", "2020:07:21 14:03:59")
        for (dateTime, original, digitized, expected) in [
            (late, early, late, early), (late, nil, nil, nil), (nil, early, nil, early), (nil, nil, nil, nil),
            (late, nil, early, early), (nil, "0000:00:00 00:00:00", late, late),
            (late, "    :  :     :  :  ", nil, nil),
        ]
            as [(String?, String?, String?, String?)]
        {
            for isBigEndian in [false, true] {
                let block = exif(
                    dateTime: dateTime, original: original, digitized: digitized, isBigEndian: isBigEndian)
                #expect(CaptureTime.seconds(exif: block[...]) == expected.flatMap { CaptureTime.seconds($0) })
            }
        }
    }

    @Test("A JPEG with only the time of its export has no capture time", arguments: [nil, "2019:07:21 14:03:59"])
    func exported(original: String?) throws {
        try withTemporaryFolder { folder in
            let block = Array("Exif\0\0".utf8) + exif(dateTime: "2021:01:01 12:00:00", original: original)
            let jpeg = try ImageFile.encodeJPEG(RasterImage(width: 16, height: 16, filledWith: 90))
            let file = folder.appending(path: "photo.jpg")
            try Data(inserting(0xE1, block, into: jpeg)).write(to: file)
            #expect(CaptureTime.text(of: file) == original)
        }
    }

    @Test("Truncated and damaged blocks have a time or none, but never crash") func damaged() {
        let block = exif(dateTime: "2020:07:21 14:03:59", original: "2019:07:21 14:03:59")
        var times = (0..<block.count).map { CaptureTime.seconds(exif: block[..<$0]) }
        for offset in 8..<block.count {
            var damaged = block
            damaged[offset] = 0xFF
            times.append(CaptureTime.seconds(exif: damaged[...]))
        }
        // Some damage only concerns a part that does not matter.
        #expect(times.contains(nil) && times.contains { $0 != nil })
    }
}
