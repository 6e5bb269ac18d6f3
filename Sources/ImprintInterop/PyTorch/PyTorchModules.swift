internal import ImprintNetwork

/// The PyTorch modules of the nodes.
extension PyTorchSource {
    /// Returns the PyTorch module of each node with parameters.
    static func modules(_ library: Library, _ network: String) throws -> [String: String] {
        guard let design = try InvertedResidualDesign.named(network) else {
            return network.hasPrefix("resnet") ? resNetModules(network) : squeezeNetModules(network)
        }
        return switch library {
        case .torchvision: torchvisionModules(design, isEfficientNet: network.hasPrefix("efficientnet"))
        case .timm: timmModules(design)
        case .efficientNetPyTorch: efficientNetPyTorchModules(design)
        }
    }

    /// The modules of ResNets, whose names are the same in torchvision and timm.
    private static func resNetModules(_ network: String) -> [String: String] {
        var modules = ["conv1": "conv1", "norm1": "bn1", "head": "fc"]
        let blocks = network == "resnet-18" ? [2, 2, 2, 2] : [3, 4, 6, 3]
        let convolutions = network == "resnet-50" ? ["a", "b", "c"] : ["a", "b"]
        for (stage, blocks) in blocks.enumerated() {
            for block in 0..<blocks {
                let name = "\(stage + 2)_\(block + 1)"
                let module = "layer\(stage + 1).\(block)"
                for (number, letter) in zip(1..., convolutions) {
                    modules["conv\(name)\(letter)"] = "\(module).conv\(number)"
                    modules["norm\(name)\(letter)"] = "\(module).bn\(number)"
                }
                if block == 0 && (stage > 0 || network == "resnet-50") {
                    modules["conv\(name)s"] = "\(module).downsample.0"
                    modules["norm\(name)s"] = "\(module).downsample.1"
                }
            }
        }
        return modules
    }

    private static func squeezeNetModules(_ network: String) -> [String: String] {
        var modules = ["conv1": "features.0", "head": "classifier.1"]
        let features = network == "squeezenet-1.0" ? [3, 4, 5, 7, 8, 9, 10, 12] : [3, 4, 6, 7, 9, 10, 11, 12]
        for (number, feature) in zip(2..., features) {
            for part in ["squeeze", "expand1x1", "expand3x3"] {
                modules["fire\(number)_\(part)"] = "features.\(feature).\(part)"
            }
        }
        return modules
    }

    private static func torchvisionModules(
        _ design: InvertedResidualDesign, isEfficientNet: Bool
    ) -> [String: String] {
        var modules = ["conv0": "features.0.0", "norm0": "features.0.1"]
        // MobileNetV2 has its projection without an enclosing module.
        let isMobileNetV2 = !isEfficientNet && !design.hasHiddenLayer
        for (number, block) in zip(1..., design.blocks) {
            let module =
                isEfficientNet
                ? "features.\(block.stage + 1).\(block.index).block"
                : "features.\(number).\(isMobileNetV2 ? "conv" : "block")"
            var part = 0
            func add(_ name: String) {
                modules["conv\(number)_\(name)"] = "\(module).\(part).0"
                modules["norm\(number)_\(name)"] = "\(module).\(part).1"
                part += 1
            }
            if block.hasExpansion { add("expand") }
            add("depthwise")
            if block.hasSqueeze {
                modules["squeeze\(number)_reduce"] = "\(module).\(part).fc1"
                modules["squeeze\(number)_expand"] = "\(module).\(part).fc2"
                part += 1
            }
            add("project")
            if isMobileNetV2 {
                modules["conv\(number)_project"] = "\(module).\(part - 1)"
                modules["norm\(number)_project"] = "\(module).\(part)"
            }
        }
        let count = design.blocks.count + 1
        let last = isEfficientNet ? (design.blocks.last?.stage ?? 0) + 2 : count
        modules["conv\(count)"] = "features.\(last).0"
        modules["norm\(count)"] = "features.\(last).1"
        if design.hasHiddenLayer { modules["dense1"] = "classifier.0" }
        modules["head"] = design.hasHiddenLayer ? "classifier.3" : "classifier.1"
        return modules
    }

    private static func timmModules(_ design: InvertedResidualDesign) -> [String: String] {
        var modules = ["conv0": "conv_stem", "norm0": "bn1", "head": "classifier"]
        for (number, block) in zip(1..., design.blocks) {
            let module = "blocks.\(block.stage).\(block.index)"
            var norm = 1
            func add(_ name: String, _ convolution: String) {
                modules["conv\(number)_\(name)"] = "\(module).\(convolution)"
                modules["norm\(number)_\(name)"] = "\(module).bn\(norm)"
                norm += 1
            }
            if block.hasExpansion { add("expand", "conv_pw") }
            add("depthwise", "conv_dw")
            add("project", block.hasExpansion ? "conv_pwl" : "conv_pw")
            modules["squeeze\(number)_reduce"] = "\(module).se.conv_reduce"
            modules["squeeze\(number)_expand"] = "\(module).se.conv_expand"
        }
        let count = design.blocks.count + 1
        if design.hasHiddenLayer {
            let stage = (design.blocks.last?.stage ?? 0) + 1
            modules["conv\(count)"] = "blocks.\(stage).0.conv"
            modules["norm\(count)"] = "blocks.\(stage).0.bn1"
            modules["dense1"] = "conv_head"
        } else {
            modules["conv\(count)"] = "conv_head"
            modules["norm\(count)"] = "bn2"
        }
        return modules
    }

    private static func efficientNetPyTorchModules(_ design: InvertedResidualDesign) -> [String: String] {
        var modules = ["conv0": "_conv_stem", "norm0": "_bn0", "head": "_fc"]
        for number in 1...design.blocks.count {
            let module = "_blocks.\(number - 1)"
            for (index, name) in ["expand", "depthwise", "project"].enumerated() {
                modules["conv\(number)_\(name)"] = "\(module)._\(name)_conv"
                modules["norm\(number)_\(name)"] = "\(module)._bn\(index)"
            }
            modules["squeeze\(number)_reduce"] = "\(module)._se_reduce"
            modules["squeeze\(number)_expand"] = "\(module)._se_expand"
        }
        modules["conv\(design.blocks.count + 1)"] = "_conv_head"
        modules["norm\(design.blocks.count + 1)"] = "_bn1"
        return modules
    }
}
