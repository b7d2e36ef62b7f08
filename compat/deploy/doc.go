// Package deploy holds what is in the folder deploy to the program: metrics that
// are named there exist, settings that are set there are read, and files of other
// programs' are read by these programs where they are here.
//
// No container is built, no Kubernetes is asked, and no unit is started here: the
// Dockerfile and the manifests are parsed, strictly, and no more.
package deploy
