package import Foundation
package import ImprintCore
internal import ImprintImages

extension DrawingRecipe {
    /// What a drawn folder was drawn with; it lies in the folder, hidden.
    private struct Stamp: Codable, Equatable, CustomStringConvertible {
        static let fileName = ".drawing.json"

        let recipe: DrawingRecipe
        let count: Int
        let seed: UInt64

        var description: String { "the recipe \"\(recipe.name)\", \(count) images, seed \(seed)" }
    }

    /// Draws a data set: `count` JPEG files, split evenly over the labels, as `folder/label/00001.jpg` and so on.
    ///
    /// The same recipe, count and seed give the same bytes. A folder that was drawn with the same three is drawn again;
    /// any other folder must be empty or not there.
    /// - Parameters:
    ///   - folder: The folder to write, created if it is missing.
    ///   - count: How many images, at least one a label.
    ///   - seed: What the images follow from.
    ///   - workers: The threads that share the work.
    ///   - onProgress: Told, now and then, how many images are done.
    /// - Throws: `DrawingError` for a folder that holds something else or a count out of range, `ImageError` if a file
    ///   cannot be written.
    package func write(
        to folder: URL, count: Int, seed: UInt64, workers: Workers, onProgress: (Int) -> Void = { _ in }
    ) throws {
        let counts = labels.count...10_000_000
        guard counts.contains(count) else { throw DrawingError.invalidCount(count: count, expected: counts) }
        try claim(folder, for: Stamp(recipe: self, count: count, seed: seed))
        var files: [(label: Int, index: Int)] = []
        for label in labels.indices {
            try makeFolder(folder.appending(path: labels[label].name))
            files += (0..<imageCount(ofLabel: label, count: count)).map { (label, $0) }
        }
        _ = try workers.parallelMap(files.count, onProgress: onProgress) { place throws(ImageError) in
            let (label, index) = files[place]
            let name = String(format: "%05d.jpg", index + 1)
            let url = folder.appending(path: "\(labels[label].name)/\(name)")
            try ImageFile.write(draw(label: label, index: index, seed: seed), to: url, quality: 92)
        }
    }

    /// Makes the folder this drawing's own, or finds that it is already.
    private func claim(_ folder: URL, for stamp: Stamp) throws(DrawingError) {
        try makeFolder(folder)
        let file = folder.appending(path: Stamp.fileName)
        if let data = try? Data(contentsOf: file) {
            guard let found = try? JSONDecoder().decode(Stamp.self, from: data) else {
                throw .foreignFolder(folder: folder, found: Stamp.fileName)
            }
            guard found == stamp else {
                throw .otherDrawing(folder: folder, found: "\(found)", expected: "\(stamp)")
            }
            return
        }
        let contents = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        if let other = contents.min() { throw .foreignFolder(folder: folder, found: other) }
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            try encoder.encode(stamp).write(to: file, options: .atomic)
        } catch {
            throw .unwritable(file: file, reason: reason(of: error))
        }
    }

    private func makeFolder(_ folder: URL) throws(DrawingError) {
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            throw .unwritable(file: folder, reason: reason(of: error))
        }
    }
}
