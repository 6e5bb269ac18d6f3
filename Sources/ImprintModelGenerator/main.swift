import Foundation

// ImprintModelGenerator MODEL OUTPUT OTHER…, as the plugin ImprintModels calls it: each OTHER is a model of the same module.
let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2 else {
    fail("usage: ImprintModelGenerator MODEL.imprint OUTPUT.swift [OTHER.imprint …]", status: 64)
}
let (model, output) = (arguments[0], arguments[1])
do {
    let file = URL(filePath: model)
    let source = TypedModelSource(fileName: file.lastPathComponent, labels: try ModelMetadata(contentsOf: file).labels)
    let others = arguments[2...]
    if let namesake = others.first(where: {
        TypedModelSource.type(of: URL(filePath: $0).lastPathComponent) == source.type
    }) {
        throw ModelHeaderError(path: model, problem: .sameType(source.type, as: namesake))
    }
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
