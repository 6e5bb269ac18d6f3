import Foundation
import ImprintCore
import Testing

@Suite struct SystemMemoryTests {
    @Test("There is some memory, and no more than the machine has") func available() {
        #expect(SystemMemory.available > 1 << 20)
        #expect(SystemMemory.available <= Int(ProcessInfo.processInfo.physicalMemory))
    }
}
