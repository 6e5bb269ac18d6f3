package import Foundation

/// Whether there is a file, folder or link at `url`, including a broken link.
package func exists(_ url: URL) -> Bool {
    var status = stat()
    return lstat(url.path, &status) == 0
}

extension URL {
    /// Returns whether this file or folder is a folder or inside it, after symbolic links are resolved.
    ///
    /// Neither has to exist: of a path that does not exist yet, the parent folders that exist may be links.
    /// - Parameters:
    ///   - folder: The folder.
    ///   - strictly: Whether the folder itself does not count.
    package func isInside(_ folder: URL, strictly: Bool = false) -> Bool {
        let (inner, outer) = (resolvedComponents, folder.resolvedComponents)
        return inner.starts(with: outer) && !(strictly && inner.count == outer.count)
    }

    /// The names of the path from the root folder, without links, "." and "..".
    private var resolvedComponents: [String] {
        var existing = absoluteURL.path(percentEncoded: false).split(separator: "/").map(String.init)
        var rest: [String] = []
        while !existing.isEmpty {
            if let path = realpath("/" + existing.joined(separator: "/"), nil) {
                defer { free(path) }
                existing = String(cString: path).split(separator: "/").map(String.init)
                break
            }
            rest.append(existing.removeLast())
        }
        for name in rest.reversed() where name != "." {
            if name == ".." { _ = existing.popLast() } else { existing.append(name) }
        }
        return existing
    }
}
