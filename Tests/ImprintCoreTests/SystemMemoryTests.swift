import Foundation
import ImprintCore
import Testing

@Suite struct SystemMemoryTests {
    @Test("The available memory is at most the physical memory") func available() {
        #expect(SystemMemory.available > 1 << 20)
        #expect(SystemMemory.available <= Int(ProcessInfo.processInfo.physicalMemory))
    }
}
