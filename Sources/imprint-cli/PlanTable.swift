internal import Foundation
internal import ImprintCore
internal import ImprintNetwork

/// Formats an execution plan as a table with a row for each operation, and totals.
enum PlanTable {
    static func text(_ plan: ExecutionPlan.Overview) -> String {
        var rows = [
            [
                "layer", "kind", "algorithm", "precision", "input", "output", "parameters", "GFLOP", "result", "saved",
                "scratch",
                "packed",
            ]
        ]
        rows += plan.layers.map { layer in
            [
                shown(layer.name), layer.kind, layer.algorithm.rawValue, layer.precision.rawValue,
                layer.inputs.map(\.description).joined(separator: ", "), layer.output.description,
                TextTable.orDash(layer.parameterCount, \.description),
                TextTable.orDash(layer.multiplications, TextTable.gigaflops),
                TextTable.orDash(layer.activationByteCount, TextTable.bytes),
                TextTable.orDash(layer.savedByteCount, TextTable.bytes),
                TextTable.orDash(layer.scratchByteCount, TextTable.bytes),
                TextTable.orDash(layer.transformedWeightsByteCount, TextTable.bytes),
            ]
        }
        let parameters = plan.layers.reduce(0) { $0 + $1.parameterCount }
        let gigaflops = TextTable.gigaflops(plan.multiplications)
        var total = "total        \(gigaflops) GFLOP per image, \(parameters) parameters, "
        total += "arena \(TextTable.bytes(plan.arenaByteCount)), "
        total += "packed weights \(TextTable.bytes(plan.transformedWeightsByteCount))"
        if plan.mode == .training { total += ", gradients \(TextTable.bytes(plan.gradientByteCount))" }
        return """
            plan         \(plan.mode.rawValue), batch size \(plan.batchSize), \(counted(plan.threads, "thread"))
            kernels      \(Engine.current)

            \(TextTable.aligned(rows, leading: 6))

            \(total)
            """
    }
}
