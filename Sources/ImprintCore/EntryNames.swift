internal import Foundation

/// The error number of a failed system call.
package struct SystemCallError: Error {
    package let code: Int32
}

/// Returns the names of the entries of a folder as the bytes that the file system stores, without "." and "..", in any order.
///
/// `FileManager` omits or changes names that are not UTF-8, so a program that uses it overlooks files.
/// - Parameter descriptor: The open folder; this function closes it.
package func entryNames(closing descriptor: Int32) throws(SystemCallError) -> [[UInt8]] {
    guard let stream = fdopendir(descriptor) else {
        let error = SystemCallError(code: errno)
        close(descriptor)
        throw error
    }
    defer { closedir(stream) }
    var names: [[UInt8]] = []
    while true {
        errno = 0
        guard let entry = readdir(stream) else { break }
        // Read in place, because an entry is only as long as its name.
        let start = UnsafeRawPointer(entry) + (MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
        let name = Array(UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
        if name != Array(".".utf8), name != Array("..".utf8) { names.append(name) }
    }
    guard errno == 0 else { throw SystemCallError(code: errno) }
    return names
}
