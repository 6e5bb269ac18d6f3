/// The dataflow between the nodes of a network, or between the operations of a plan.
///
/// Operator fusion and the memory planner derive it in the same way, so they agree on the gradients that a plan computes.
struct Dataflow {
    /// For each node, the nodes that read its output.
    let readers: [[Int]]
    /// For each node, whether the gradient of its output is needed.
    let needsGradient: [Bool]

    /// Creates the dataflow of nodes in order of execution.
    /// - Parameters:
    ///   - sources: For each node, the indices of the nodes that it reads; −1 is the network's input.
    ///   - options: The options of the plan.
    ///   - isTrained: Returns whether training changes parameters of a node by gradients.
    init(_ sources: [[Int]], options: ExecutionPlan.Options, isTrained: (_ node: Int) -> Bool) {
        var readers = [[Int]](repeating: [], count: sources.count)
        var needs: [Bool] = []
        for (node, inputs) in sources.enumerated() {
            for source in inputs where source >= 0 { readers[source].append(node) }
            let propagates = inputs.contains { $0 < 0 ? options.inputGradient : needs[$0] }
            needs.append(options.mode == .training && (propagates || isTrained(node)))
        }
        self.readers = readers
        needsGradient = needs
    }
}
