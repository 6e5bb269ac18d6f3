import Foundation
import TestSupport
import Testing

@Suite struct CLIReferenceTests {
    @Test(
        "docs/reference/cli.md is the page that its script generates; if it is not, run ./run cli",
        .enabled(if: Python.path != nil, "IMPRINT_PYTHON is not set"))
    func generatedPage() throws {
        let folder = packageFolder.appending(path: "docs/reference")
        let python = URL(filePath: try #require(Python.path))
        let script = folder.appending(path: "make_cli_reference.py")
        let generated = try run(python, [script.path, tool.path])
        #expect(generated.status == 0, "\(generated.errors)")
        let page = try String(contentsOf: folder.appending(path: "cli.md"), encoding: .utf8)
        let lines = zip(page.split(separator: "\n"), generated.output.split(separator: "\n"))
        let (line, expected) = lines.first { $0 != $1 } ?? ("", "")
        #expect(
            page == generated.output,
            "cli.md differs from the help texts; run ./run cli. It has \"\(line)\", expected \"\(expected)\"")
    }
}
