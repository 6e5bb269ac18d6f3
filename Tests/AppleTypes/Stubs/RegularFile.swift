// swift-format-ignore-file
// The class in Disk.swift of ImprintStore, which needs the modules that read models.
final class RegularFile {
    var byteCount: Int { fatalError() }
    init(_ path: String) throws {}
    func read(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {}
}
