import Foundation
import ImprintCore
import ImprintModel

// Reads the safetensors files whose paths are on standard input, one per line, and prints a line for each file: `+` and the digest of its
// content, or `-`, the problem and the message. Fuzzing/differential/compare.py compares these lines with the reference implementation.

/// Returns the digest of a file's content: a sorted line for each entry of the metadata and each tensor, with texts in hexadecimal.
func digest(of file: Safetensors.File, _ bytes: Data) -> String {
    func hexadecimal(_ text: String) -> String { text.utf8.map { String(format: "%02x", $0) }.joined() }
    let entries = file.header.metadata.map { "m \(hexadecimal($0.key)) \(hexadecimal($0.value))" }
    let data = bytes.dropFirst(bytes.count - (file.header.tensors.last?.byteRange.upperBound ?? 0))
    let tensors = file.header.tensors.map { tensor in
        let shape = tensor.shape.map(String.init).joined(separator: ",")
        let content = data.dropFirst(tensor.byteRange.lowerBound).prefix(tensor.byteRange.count)
        return "t \(hexadecimal(tensor.name)) \(tensor.elementType.rawValue) [\(shape)] "
            + "\(tensor.byteRange.lowerBound) \(tensor.byteRange.upperBound) \(SHA256.hexadecimal(of: [UInt8](content)))"
    }
    return SHA256.hexadecimal(of: Array((entries + tensors).sorted().joined(separator: "\n").utf8))
}

while let path = readLine() {
    let url = URL(filePath: path)
    do {
        print("+", digest(of: try Safetensors.File(contentsOf: url), try Data(contentsOf: url)), separator: "\t")
    } catch let error as SafetensorsError {
        let problem = Mirror(reflecting: error.problem).children.first?.label ?? "\(error.problem)"
        // Names of tensors can contain line breaks.
        let message = String(
            String.UnicodeScalarView(
                "\(error)".unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
        print("-", problem, message, separator: "\t")
    } catch {
        print("-", "unreadable", error, separator: "\t")
    }
}
