import Foundation
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

@Suite struct WireMessageTests {
    private func bytes(_ fill: (inout MessageBuilder) -> Void) throws -> [UInt8] {
        var message = MessageBuilder()
        fill(&message)
        var bytes: [UInt8] = []
        try message.write { bytes += $0 }
        #expect(bytes.count == message.byteCount)
        return bytes
    }

    @Test("Integers are varints, negative ones take ten bytes, and high field numbers take more bytes")
    func integers() throws {
        #expect(try bytes { $0.add(1, 150) } == [0x08, 0x96, 0x01])
        #expect(try bytes { $0.add(1, 0) } == [0x08, 0x00])
        #expect(try bytes { $0.add(1, -1) } == [0x08] + [UInt8](repeating: 0xFF, count: 9) + [0x01])
        #expect(try bytes { $0.add(1, Int.max) } == [0x08] + [UInt8](repeating: 0xFF, count: 8) + [0x7F])
        #expect(try bytes { $0.add(403, true) } == [0x98, 0x19, 0x01])
        #expect(try bytes { $0.add(6, packed: [3, 270, 86_942]) } == [0x32, 6, 3, 0x8E, 2, 0x9E, 0xA7, 5])
    }

    @Test("Floating-point numbers are little-endian, and strings are UTF-8")
    func others() throws {
        #expect(try bytes { $0.add(1, Float(-2)) } == [0x0D, 0, 0, 0, 0xC0])
        #expect(try bytes { $0.add(1, Double(1)) } == [0x09, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F])
        #expect(try bytes { $0.add(2, "é") } == [0x12, 2, 0xC3, 0xA9])
        #expect(try bytes { $0.add(2, packed: [Float(-2)]) } == [0x12, 4, 0, 0, 0, 0xC0])
        #expect(try bytes { $0.add(14, key: "k", value: "") } == [0x72, 5, 0x0A, 1, 0x6B, 0x12, 0])
    }

    @Test(
        "Nested messages have correct lengths, and deferred fields are encoded only when written"
    )
    func nested() throws {
        var callCount = 0
        var inner = MessageBuilder()
        inner.add(1, 1)
        inner.add(2, byteCount: 200) { body in
            callCount += 1
            try [UInt8](repeating: 7, count: 200).withUnsafeBytes(body)
        }
        inner.add(3, 1)
        var outer = MessageBuilder()
        outer.add(1, inner)
        outer.add(2, MessageBuilder())
        #expect(callCount == 0)
        var parts: [[UInt8]] = []
        try outer.write { parts.append(Array($0)) }
        #expect(callCount == 1)
        // The lengths are 2, 3 + 200 and 2 bytes.
        let head: [UInt8] = [0x0A, 207, 1, 0x08, 1, 0x12, 200, 1]
        #expect(parts == [head, [UInt8](repeating: 7, count: 200), [0x18, 1, 0x12, 0]])
    }
}
