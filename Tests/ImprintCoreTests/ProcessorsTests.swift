import Foundation
import Testing

@testable import ImprintCore

@Suite struct ProcessorsTests {
    @Test(
        "Processor lists in the format of Linux are parsed",
        arguments: [("0", [0]), (" 0-3,8\n", [0, 1, 2, 3, 8]), ("5,7-8", [5, 7, 8]), ("", []), ("3-1", [])])
    func lists(list: String, expected: [Int]) {
        #expect(Processors.numbers(in: list) == expected)
    }

    @Test("The core count is at least 1 and at most the processor count")
    func counts() {
        #expect(Processors.coreCount >= 1)
        #expect(Processors.coreCount <= Processors.count)
        #expect(Processors.count <= ProcessInfo.processInfo.processorCount)
    }
}
