import Foundation
import FuzzTargets
import Synchronization

/// The target that the name of the program selects, such as fuzz_onnx.
private let target = Mutex<FuzzTarget?>(nil)

/// Selects the target; libFuzzer calls this function once.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> CInt {
    let path = arguments.pointee.pointee.map { String(cString: $0) } ?? ""
    guard let found = FuzzTarget(program: path) else {
        let names = FuzzTarget.allCases.map(\.programName).joined(separator: ", ")
        FileHandle.standardError.write(Data("Copy or link \(path) to one of these names: \(names).\n".utf8))
        exit(2)
    }
    target.withLock { $0 = found }
    return 0
}

/// Reads an input of libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    try? target.withLock { $0 }?.read(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}
