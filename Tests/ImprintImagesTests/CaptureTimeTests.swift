import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Returns an EXIF block with DateTime in its first directory and DateTimeOriginal in its Exif directory, if not nil.
func exif(dateTime: String?, original: String?, isBigEndian: Bool = false) -> [UInt8] {
    func integer(_ value: Int, _ bytes: Int) -> [UInt8] {
        let little = (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        return isBigEndian ? little.reversed() : little
    }
    func entry(_ tag: Int, type: Int, count: Int, value: Int) -> [UInt8] {
        integer(tag, 2) + integer(type, 2) + integer(count, 4) + integer(value, 4)
    }
    // The bytes are the header (8), a directory of two entries (30), an Exif directory of one entry (18), and the texts.
    let head = (isBigEndian ? Array("MM".utf8) : Array("II".utf8)) + integer(42, 2) + integer(8, 4)
    let first =
        integer(2, 2) + entry(dateTime == nil ? 0x10F : 0x132, type: 2, count: 20, value: 56)
        + entry(original == nil ? 0x8825 : 0x8769, type: 4, count: 1, value: 38) + integer(0, 4)
    let second = integer(1, 2) + entry(0x9003, type: 2, count: 20, value: 76) + integer(0, 4)
    func text(_ text: String?) -> [UInt8] { Array((text ?? "-------------------").utf8) + [0] }
    return head + first + second + text(dateTime) + text(original)
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

    @Test("The original time takes precedence", arguments: [false, true])
    func tags(isBigEndian: Bool) {
        let (early, late) = ("2019:07:21 14:03:59", "2020:07:21 14:03:59")
        for (dateTime, original, expected) in [
            (late, early, early), (late, nil, late), (nil, early, early), (nil, nil, nil),
        ]
            as [(String?, String?, String?)]
        {
            let block = exif(dateTime: dateTime, original: original, isBigEndian: isBigEndian)
            #expect(CaptureTime.seconds(exif: block[...]) == expected.flatMap { CaptureTime.seconds($0) })
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
