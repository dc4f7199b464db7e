# The schemas of docs/schema as a table in <build>/generated/schema_texts.hpp: a record is made with the keys of its schema,
# which may name parts of others. A schema that changes reconfigures.
file(GLOB _schemas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/schema/*.schema.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_schemas})
set(SCALEMARK_SCHEMA_TEXTS "")
foreach(_schema ${_schemas})
  file(READ ${_schema} _text)
  get_filename_component(_name ${_schema} NAME_WE)
  string(APPEND SCALEMARK_SCHEMA_TEXTS "    {\"${_name}\", R\"schema(${_text})schema\"},\n")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/schema_texts.hpp.in ${SCALEMARK_GENERATED_DIR}/schema_texts.hpp @ONLY)
