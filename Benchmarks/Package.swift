// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that those who use Imprint neither fetch nor build it.
let package = Package(
    name: "imprint-benchmarks",
    products: [.library(name: "AllocationCounter", type: .dynamic, targets: ["CAllocationCounter"])],
    targets: [.target(name: "CAllocationCounter")]
)
