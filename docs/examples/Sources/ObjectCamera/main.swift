// ObjectCamera MODEL FOLDER [--watch]: classifies the photos that a camera puts into a folder, and keeps a history.
//
// The history is FOLDER/history.jsonl, with one JSON object per line. Photos in the history are not classified again. With --watch, the
// program runs until it is interrupted.
import Foundation
import Imprint
import ImprintImages

struct HistoryEntry: Codable {
    let picture: String
    let label: String
    let confidence: Float
    let time: Date
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count == 2 || arguments.count == 3 && arguments[2] == "--watch" else {
    end("usage: ObjectCamera MODEL FOLDER [--watch]", 64)
}
do {
    let request = ClassificationRequest(try ImageClassifier(contentsOf: URL(filePath: arguments[0])))
    let folder = URL(filePath: arguments[1], directoryHint: .isDirectory)
    let history = folder.appending(path: "history.jsonl")
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    encoder.outputFormatting = .sortedKeys
    (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.iso8601, .iso8601)

    guard FileManager.default.fileExists(atPath: folder.path) else { end("\(folder.path): is not a folder", 1) }
    if !FileManager.default.fileExists(atPath: history.path) { try Data().write(to: history) }
    let file = try FileHandle(forUpdating: history)
    let lines = try file.readToEnd()?.split(separator: UInt8(ascii: "\n")) ?? []
    let entries = lines.compactMap { try? decoder.decode(HistoryEntry.self, from: $0) }
    guard entries.count == lines.count else { end("\(history.path): is damaged; move it away", 1) }
    var known = Set(entries.map(\.picture))
    repeat {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        where !name.hasPrefix(".") && name != history.lastPathComponent && !known.contains(name) {
            do {
                let classifications = try await request.perform(on: .file(folder.appending(path: name)))
                guard let best = classifications.first else { continue }
                let entry = HistoryEntry(picture: name, label: best.label, confidence: best.confidence, time: .now)
                try file.write(contentsOf: encoder.encode(entry) + Data("\n".utf8))
                known.insert(name)
                print("\(name): \(best.label) \(Int((best.confidence * 100).rounded())) %")
                fflush(nil)
            } catch let error as ImageError {
                // The camera may still write the file, so the next pass tries again.
                FileHandle.standardError.write(Data("\(error)\n".utf8))
            }
        }
        if arguments.count == 3 { try await Task.sleep(for: .seconds(1)) }
    } while arguments.count == 3
} catch {
    end("\(error)", 1)
}

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
