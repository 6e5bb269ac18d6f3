import Foundation
import ImprintCore
import ImprintImages
import ImprintTraining
import TestSupport
import Testing

@Suite("Mutated annotations") struct MutatedAnnotationTests {
    /// The number of files of each format; `IMPRINT_MUTANTS` sets another one for longer runs.
    private static let count = ProcessInfo.processInfo.environment["IMPRINT_MUTANTS"].flatMap { Int($0) } ?? 2000

    @Test("A mutated file is an error or has valid boxes", arguments: AnnotationFormat.allCases)
    func mutants(format: AnnotationFormat) throws {
        try withAnnotatedPhotos(format.files) { folder in
            var (errors, read) = (0, 0)
            for index in 0..<Self.count {
                // YOLO has two kinds of files.
                let path = format == .yolo && index % 3 == 0 ? "data.yaml" : format.boxFile
                let original = Array(try #require(format.files[path]).utf8)
                let url = folder.appending(path: path)
                var stream = RandomStream(seed: 5, "annotations \(format.rawValue)", index)
                try Data(mutated(original, &stream)).write(to: url)
                do {
                    let annotations = try BoxAnnotations(contentsOf: folder)
                    let objects = annotations.photos.flatMap(\.objects)
                    #expect(objects.allSatisfy { $0.box.isWithinImage && annotations.labels.contains($0.label) })
                    // At most one line for each of the 17 kinds, with three short examples, and for each of the 5 notes.
                    #expect(annotations.warnings.count <= 22)
                    #expect(annotations.warnings.allSatisfy { $0.count < 600 })
                    _ = try annotations.cocoData()
                    read += 1
                } catch {
                    #expect(error is BoxAnnotationsError || error is ImageError, "\(error)")
                    errors += 1
                }
                try Data(original).write(to: url)
            }
            #expect(errors > 0 && read > 0)
        }
    }

    /// Changes one to four parts of a file.
    private func mutated(_ original: [UInt8], _ stream: inout RandomStream) -> [UInt8] {
        var bytes = original
        let tokens = [
            "-", "0", "9", "1e300", "nan", "NaN", ".", "\"", "[", "{", "}", "<", "/", ",", ":", "\n", "\0", "\u{E9}",
        ]
        for _ in 0...stream.index(below: 4) where !bytes.isEmpty {
            let start = stream.index(below: bytes.count)
            let end = min(start + 1 + stream.index(below: 24), bytes.count)
            switch stream.index(below: 6) {
            case 0: bytes[start] ^= 1 << UInt8(stream.index(below: 8))
            case 1: bytes[start] = UInt8(stream.index(below: 256))
            case 2: bytes.removeSubrange(start..<end)
            case 3: bytes.insert(contentsOf: bytes[start..<end], at: stream.index(below: bytes.count))
            case 4: bytes.removeSubrange(start...)
            default: bytes.insert(contentsOf: tokens[stream.index(below: tokens.count)].utf8, at: start)
            }
        }
        return bytes
    }
}
