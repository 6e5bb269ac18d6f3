import Foundation

// ImprintModelGenerator MODEL OUTPUT, as the plugin ImprintModels calls it.
let arguments = CommandLine.arguments.dropFirst()
guard let model = arguments.first, let output = arguments.last, arguments.count == 2 else {
    fail("usage: ImprintModelGenerator MODEL.imprint OUTPUT.swift", status: 64)
}
do {
    let file = URL(filePath: model)
    let source = TypedModelSource(fileName: file.lastPathComponent, labels: try ModelMetadata(contentsOf: file).labels)
    do {
        try Data(source.text.utf8).write(to: URL(filePath: output), options: .atomic)
    } catch {
        fail("\(output): cannot be written (\(error.localizedDescription)); check its folder and the disk", status: 1)
    }
} catch {
    fail("\(error)", status: 1)
}

/// Ends the program with a sentence, in the form in which builds show errors.
func fail(_ sentence: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data("error: \(sentence)\n".utf8))
    exit(status)
}
