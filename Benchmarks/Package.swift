// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that those who use Imprint neither fetch nor build it.
let package = Package(
    name: "imprint-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "imprint", path: "..")],
    targets: [
        .target(name: "CAllocationCounter"),
        .executableTarget(
            name: "imprint-benchmarks",
            dependencies: ["CAllocationCounter", .product(name: "Imprint", package: "imprint")]),
    ],
    swiftLanguageModes: [.v6]
)
