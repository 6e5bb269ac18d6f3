import Foundation

/// Measures the cases whose names begin with one of the arguments, or all.
@main
struct Main {
    static func main() throws {
        let names = CommandLine.arguments.dropFirst()
        let known = TrainingStep.all.map(\.name) + LayerPasses.all.map(\.name)
        if let unknown = names.first(where: { name in !known.contains { $0.hasPrefix(name) } }) {
            FileHandle.standardError.write(
                Data("No case begins with \(unknown); choose from \(known.joined(separator: ", ")).\n".utf8))
            exit(64)
        }
        func chosen(_ name: String) -> Bool { names.isEmpty || names.contains { name.hasPrefix($0) } }

        let steps = TrainingStep.all.filter { chosen($0.name) }
        if !steps.isEmpty { show(TrainingStep.heading) }
        for step in steps {
            for threads in [1, 2] { show(try step.measure(threads: threads)) }
        }
        let layers = LayerPasses.all.filter { chosen($0.name) }
        guard !layers.isEmpty else { return }
        show(LayerPasses.heading)
        let yardstick = try LayerPasses.sgemm.measure(threads: 1, yardstick: nil)
        show(yardstick.lines[0])
        for threads in [1, 2] {
            for layer in layers {
                let ceiling = Double(threads) * yardstick.rate
                for line in try layer.measure(threads: threads, yardstick: ceiling).lines { show(line) }
            }
        }
    }

    /// Prints a line, at once where standard output is a pipe or a file too.
    private static func show(_ line: String) {
        print(line)
        fflush(nil)
    }
}
