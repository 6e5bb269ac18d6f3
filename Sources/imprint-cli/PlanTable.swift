internal import Foundation
internal import ImprintNetwork

/// A plan as lines for people: one for each operation, and what they come to.
enum PlanTable {
    static func text(_ plan: Plan.Overview) -> String {
        var rows = [
            [
                "layer", "kind", "algorithm", "input", "output", "parameters", "GFLOP", "result", "saved", "scratch",
                "prepared",
            ]
        ]
        rows += plan.layers.map { layer in
            [
                layer.name, layer.kind, layer.algorithm.rawValue,
                layer.inputs.map(\.description).joined(separator: ", "), layer.output.description,
                orDash(layer.parameterCount, \.description), orDash(layer.multiplications, gigaflops),
                orDash(layer.activationByteCount, bytes), orDash(layer.savedByteCount, bytes),
                orDash(layer.scratchByteCount, bytes),
                orDash(layer.preparedByteCount, bytes),
            ]
        }
        let parameters = plan.layers.reduce(0) { $0 + $1.parameterCount }
        var total = "total        \(gigaflops(plan.multiplications)) GFLOP for one image, \(parameters) parameters, "
        total += "arena \(bytes(plan.arenaByteCount)), prepared \(bytes(plan.preparedByteCount))"
        if plan.mode == .training { total += ", gradients \(bytes(plan.gradientByteCount))" }
        return """
            plan         \(plan.mode.rawValue), \(count(plan.batchSize, "image")) at once, \(count(plan.threads, "thread"))
            kernels      \(Engine.current)

            \(aligned(rows))

            \(total)
            """
    }

    /// Columns as wide as they have to be: the first five begin at one place, the others end at one.
    private static func aligned(_ rows: [[String]]) -> String {
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { column, text in
                let space = String(repeating: " ", count: widths[column] - text.count)
                return column < 5 ? text + space : space + text
            }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    private static func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

    private static func orDash(_ number: Int, _ text: (Int) -> String) -> String { number == 0 ? "–" : text(number) }

    /// Each multiplication with its addition is two operations.
    private static func gigaflops(_ multiplications: Int) -> String {
        let number = 2e-9 * Double(multiplications)
        return 0 < number && number < 0.001 ? "<0.001" : String(format: "%.3f", number)
    }

    private static func bytes(_ count: Int) -> String {
        switch count {
        case ..<1000: "\(count) B"
        case ..<1_000_000: String(format: "%.1f kB", Double(count) / 1e3)
        default: String(format: "%.1f MB", Double(count) / 1e6)
        }
    }
}
