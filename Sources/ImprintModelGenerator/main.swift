import Foundation

// ImprintModelGenerator MODEL OUTPUT OTHER…, run by the plugin ImprintModels. Each OTHER is another model of the same module.
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
        fail("\(output): cannot be written (\(error.localizedDescription)). Check its folder and the disk.", status: 1)
    }
} catch {
    fail("\(error)", status: 1)
}

/// Prints an error in the format of compilers and ends the program.
func fail(_ message: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data("error: \(message)\n".utf8))
    exit(status)
}
