import Foundation
import Testing

@testable import ImprintCore

@Suite struct ProcessorsTests {
    @Test(
        "Lists of processors as Linux writes them",
        arguments: [("0", [0]), (" 0-3,8\n", [0, 1, 2, 3, 8]), ("5,7-8", [5, 7, 8]), ("", []), ("3-1", [])])
    func lists(list: String, expected: [Int]) {
        #expect(Processors.numbers(in: list) == expected)
    }

    @Test("There is at least one core, and no more cores than processors")
    func counts() {
        #expect(Processors.coreCount >= 1)
        #expect(Processors.coreCount <= Processors.count)
        #expect(Processors.count <= ProcessInfo.processInfo.processorCount)
    }
}
